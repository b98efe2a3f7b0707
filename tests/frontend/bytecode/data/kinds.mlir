module @kinds {
  func.func public @main(%arg0: tensor<?x4xf32>, %arg1: tensor<4xi8>, %arg2: !stablehlo.token, %arg3: tuple<tensor<f16>, tensor<2xf8E5M2>>) -> (tensor<?x4xf32>, tensor<4xf32>, !stablehlo.token, tensor<f16>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<?x4xf32>
    %1 = stablehlo.convert %arg1 : (tensor<4xi8>) -> tensor<4xf32>
    %2 = stablehlo.composite "mine.scale" %1 {composite_attributes = {by = 2.5 : f32, flags = [true, false], name = "x\22y"}, decomposition = @scale, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = stablehlo.get_tuple_element %arg3[0] : (tuple<tensor<f16>, tensor<2xf8E5M2>>) -> tensor<f16>
    %4 = stablehlo.custom_call @lapack_spotrf_ffi(%3) {mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>], api_version = 4 : i32} : (tensor<f16>) -> tensor<f16>
    return %0, %2, %arg2, %4 : tensor<?x4xf32>, tensor<4xf32>, !stablehlo.token, tensor<f16>
  }
  func.func private @scale(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %cst = stablehlo.constant dense<2.5> : tensor<4xf32>
    %0 = stablehlo.multiply %arg0, %cst : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
