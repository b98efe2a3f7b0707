// RUN: call-inliner,cse,dce
// The helper is called twice on the same value: after inlining one copy is left.
// CHECK-NOT: call
// CHECK: ENTRY %main
// CHECK: [[E:%exponential[.0-9]+]] = f32[4]{0} exponential(%arg0
// CHECK-NOT: exponential(
// CHECK: ROOT {{.*}} multiply([[E]], [[E]])
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
