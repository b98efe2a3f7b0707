// RUN: while-loop-simplifier,while-loop-trip-count-annotator
// The limit stands in the condition itself, so the loop is counted.
// CHECK: %while_condition
// CHECK: [[LIMIT:%constant[.0-9]+]] = s32[] constant(8)
// CHECK: compare({{%get.*}}, [[LIMIT]]), direction=LT
// CHECK: ENTRY %main
// CHECK: while({{.*"n":"8"}}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<8> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.add %v, %v : tensor<f32>
      stablehlo.return %j, %w : tensor<i32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}
