// RUN: algebraic-simplifier,dce
// x + 0 makes +0 of -0 and stays; x - 0 and x / 1 do nothing and go; x / 4 is x * 0.25 to the bit.
// CHECK: [[SUM:%add[.0-9]+]] = f32[3]{0} add(%arg0
// CHECK-NOT: subtract
// CHECK-NOT: divide
// CHECK: ROOT {{.*}} multiply([[SUM]], %constant
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<3xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3xf32>
  %four = stablehlo.constant dense<4.0> : tensor<3xf32>
  %0 = stablehlo.add %x, %zero : tensor<3xf32>
  %1 = stablehlo.subtract %0, %zero : tensor<3xf32>
  %2 = stablehlo.divide %1, %one : tensor<3xf32>
  %3 = stablehlo.divide %2, %four : tensor<3xf32>
  return %3 : tensor<3xf32>
}
