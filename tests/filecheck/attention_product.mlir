// RUN: transpose-folding,dot-canonicalizer
// Heads in the third dimension: both operands become batches of matrices, and the result is in place at once.
// CHECK: [[Q:%transpose[.0-9]+]] = f32[2,3,5,4]{3,2,1,0} transpose(%arg0{{.*}}), dimensions={0,2,1,3}
// CHECK-NEXT: [[K:%transpose[.0-9]+]] = f32[2,3,4,6]{3,2,1,0} transpose(%arg1{{.*}}), dimensions={0,2,3,1}
// CHECK-NEXT: ROOT {{.*}} dot([[Q]], [[K]]), lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,1}, rhs_contracting_dims={2}
func.func @main(%q: tensor<2x5x3x4xf32>, %k: tensor<2x6x3x4xf32>) -> tensor<2x3x5x6xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
      : (tensor<2x5x3x4xf32>, tensor<2x6x3x4xf32>) -> tensor<2x3x5x6xf32>
  return %0 : tensor<2x3x5x6xf32>
}
