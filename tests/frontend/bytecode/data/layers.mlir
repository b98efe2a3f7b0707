module @layers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x6x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3x3x3x4xf32>, %arg2: tensor<16x5xbf16>) -> (tensor<2x6x6x3xf32> {jax.result_info = "y"}, tensor<2x5xf32>) {
    %c = stablehlo.constant dense<[[true, false, true], [false, false, true]]> : tensor<2x3xi1>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.0> : tensor<f32>
    %cst_1 = stablehlo.constant dense<(1.5, -2.0)> : tensor<3xcomplex<f32>>
    %c_2 = stablehlo.constant dense<[-8, 7, 1]> : tensor<3xi4>
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 0], [0, 2]], rhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x3x4x4xf32>
    %1 = "stablehlo.reduce_window"(%0, %cst) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x3x4x4xf32>, tensor<f32>) -> tensor<2x2x2x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x2x2x4xf32>) -> tensor<2x16xf32>
    %3 = stablehlo.convert %2 : (tensor<2x16xf32>) -> tensor<2x16xbf16>
    %4 = stablehlo.dot_general %3, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, HIGH] : (tensor<2x16xbf16>, tensor<16x5xbf16>) -> tensor<2x5xf32>
    %5 = call @softmax(%4) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    return %arg0, %5 : tensor<2x6x6x3xf32>, tensor<2x5xf32>
  }
  func.func private @softmax(%arg0: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x5xf32>
    %2 = stablehlo.subtract %arg0, %1 : tensor<2x5xf32>
    %3 = stablehlo.exponential %2 : tensor<2x5xf32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xf32>) -> tensor<2x5xf32>
    %6 = stablehlo.divide %3, %5 : tensor<2x5xf32>
    return %6 : tensor<2x5xf32>
  }
}
