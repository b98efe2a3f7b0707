module @control {
  func.func public @main(%arg0: tensor<8x3xf32>, %arg1: tensor<2x1xi32>, %arg2: tensor<i32>) -> (tensor<8x3xf32>, tensor<8x3xi32>, tensor<2xui64>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<[7, 11]> : tensor<2xui64>
    %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<8x3xf32>
     cond {
      %9 = stablehlo.compare LT, %i, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    } do {
      %9 = "stablehlo.gather"(%x, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = true}> : (tensor<8x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
      %10 = "stablehlo.scatter"(%x, %arg1, %9) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %12 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %12 : tensor<f32>
      }) : (tensor<8x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<8x3xf32>
      %11 = stablehlo.add %i, %c_0 : tensor<i32>
      stablehlo.return %11, %10 : tensor<i32>, tensor<8x3xf32>
    }
    %1 = stablehlo.iota dim = 0 : tensor<8x3xi32>
    %2:2 = "stablehlo.sort"(%0#1, %1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c0: tensor<i32>, %d: tensor<i32>):
      %9 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<8x3xf32>, tensor<8x3xi32>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
    %3 = stablehlo.compare EQ, %arg2, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = "stablehlo.if"(%3) ({
      stablehlo.return %2#0 : tensor<8x3xf32>
    }, {
      %9 = stablehlo.negate %2#0 : tensor<8x3xf32>
      stablehlo.return %9 : tensor<8x3xf32>
    }) : (tensor<i1>) -> tensor<8x3xf32>
    %5 = "stablehlo.case"(%arg2) ({
      stablehlo.return %4 : tensor<8x3xf32>
    }, {
      %9 = stablehlo.cosine %4 : tensor<8x3xf32>
      stablehlo.return %9 : tensor<8x3xf32>
    }) : (tensor<i32>) -> tensor<8x3xf32>
    %6 = stablehlo.custom_call @Sharding(%5) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %state, %7 = stablehlo.rng_bit_generator %c_1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui64>)
    return %6, %2#1, %7 : tensor<8x3xf32>, tensor<8x3xi32>, tensor<2xui64>
  }
}
