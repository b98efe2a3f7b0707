"""Small programs that the frontend's tests share: between them they use every construct of the text."""

from __future__ import annotations

ELEMENTWISE = """
module @small attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.buffer_donor = true}, %arg1: tensor<3xf32>) -> (tensor<2x3xf32> {jax.result_info = "y"}) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %arg0, %0 : tensor<2x3xf32>
    %3 = stablehlo.compare GT, %2, %1, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %4 = stablehlo.select %3, %2, %1 : tensor<2x3xi1>, tensor<2x3xf32>
    %5 = chlo.erf %4 : tensor<2x3xf32> -> tensor<2x3xf32>
    return %5 : tensor<2x3xf32>
  }
}
"""

LOOP = """
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1, %0#0 : tensor<4xf32>, tensor<i32>
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""

BRANCHES = """
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%i) ({
    %a = stablehlo.multiply %x, %y : tensor<8xf32>
    stablehlo.return %a : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }, {
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    stablehlo.return %zero : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""

REDUCTIONS = """
func.func @main(%x: tensor<4x6xf32>, %k: tensor<4x6xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %best:2 = stablehlo.reduce(%x init: %low), (%k init: %c) across dimensions = [1] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %0 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.select %0, %a, %b : tensor<i1>, tensor<f32>
    %2 = stablehlo.select %0, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  %pool = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %sum, %best#0, %best#1, %pool : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x3xf32>
}
"""

CONTRACTIONS = """
func.func @main(%a: tensor<2x5x7xf32>, %b: tensor<2x7x3xf32>, %x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x6xf32>) -> (tensor<2x5x3xf32>, tensor<1x4x4x6xf32>) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x5x7xf32>, tensor<2x7x3xf32>) -> tensor<2x5x3xf32>
  %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<1x4x4x6xf32>
  return %0, %1 : tensor<2x5x3xf32>, tensor<1x4x4x6xf32>
}
"""

INDEXING = """
func.func @main(%t: tensor<10x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>, %s: tensor<i32>) -> (tensor<3x4xf32>, tensor<10x4xf32>, tensor<1x2xf32>, tensor<12x4xf32>, tensor<6x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = "stablehlo.scatter"(%t, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<10x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<10x4xf32>
  %2 = stablehlo.dynamic_slice %t, %s, %s, sizes = [1, 2] : (tensor<10x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %3 = stablehlo.pad %t, %zero, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<10x4xf32>, tensor<f32>) -> tensor<12x4xf32>
  %4 = stablehlo.slice %3 [0:12:2, 0:4] : (tensor<12x4xf32>) -> tensor<6x4xf32>
  return %0, %1, %2, %3, %4 : tensor<3x4xf32>, tensor<10x4xf32>, tensor<1x2xf32>, tensor<12x4xf32>, tensor<6x4xf32>
}
"""

SORTING = """
func.func @main(%x: tensor<3x9xf32>) -> (tensor<3x9xf32>, tensor<3x9xi32>, tensor<3x2xf32>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x9xi32>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = -1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %2 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<3x9xf32>, tensor<3x9xi32>) -> (tensor<3x9xf32>, tensor<3x9xi32>)
  %values, %indices = chlo.top_k(%x, k = 2) : tensor<3x9xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %1#0, %1#1, %values : tensor<3x9xf32>, tensor<3x9xi32>, tensor<3x2xf32>
}
"""

CALLS = """
module @"odd-name" {
  func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.custom_call @"my target"(%x) {api_version = 4 : i32, has_side_effect = true, mhlo.backend_config = {scale = 1.5 : f32, uplo = 76 : ui8}, operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.composite "my.block" %0 {composite_attributes = {beta = 2.0 : f64}, decomposition = @"<lambda>", version = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
    %2:2 = stablehlo.optimization_barrier %0, %1 : tensor<2xf32>, tensor<2xf32>
    return %2#0, %2#1 : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @"<lambda>"(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
"""

SHARDED = """
module @sharded {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
      %2 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %3 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      sdy.return %2 : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
"""

CHECKED = """
func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0, 0x7F800000]> : tensor<3xf32>
  check.expect_almost_eq_const %0, dense<[1.0, 2.0, 0x7F800000]> : tensor<3xf32>
  check.expect_close %0, %0, max_ulp_difference = 3 : tensor<3xf32>, tensor<3xf32>
  func.return
}
"""

DYNAMIC = """
func.func @main(%a: tensor<?x4xf32>, %n: tensor<i32>) -> tensor<?x4xf32> {
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.concatenate %0, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %2 = stablehlo.dynamic_broadcast_in_dim %a, %1, dims = [0, 1] : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
"""

TUPLES = """
func.func @main(%t: tuple<tensor<2xf32>, tensor<i32>>) -> tuple<tensor<i32>, tensor<2xf32>> {
  %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<2xf32>
  %1 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<i32>
  %2 = stablehlo.tuple %1, %0 : tuple<tensor<i32>, tensor<2xf32>>
  return %2 : tuple<tensor<i32>, tensor<2xf32>>
}
"""

OLDER = """
func.func @main(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %i: tensor<2xi32>, %t: !stablehlo.token) -> (tensor<4x6xf32>, tensor<3x4x5xf32>, tensor<2x5xf32>, tensor<5x4xf32>, tensor<4x5xcomplex<f32>>, !stablehlo.token) {
  %0 = stablehlo.einsum %a, %b, config = "ab,bc->ac" : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.broadcast %a, sizes = [3] : (tensor<4x5xf32>) -> tensor<3x4x5xf32>
  %2 = "stablehlo.torch_index_select"(%a, %i) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x5xf32>, tensor<2xi32>) -> tensor<2x5xf32>
  %3 = stablehlo.unary_einsum %a, config = "ab->ba" : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %4 = stablehlo.complex %a, %a : tensor<4x5xcomplex<f32>>
  %5 = stablehlo.real %4 : (tensor<4x5xcomplex<f32>>) -> tensor<4x5xf32>
  %6 = stablehlo.reduce_precision %5, format = e5m10 : tensor<4x5xf32>
  %7 = chlo.next_after %6, %5 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
  %8 = chlo.constant dense<1.0> : tensor<4x5xf32>
  %9 = stablehlo.clamp %8, %7, %6 : tensor<4x5xf32>
  %10 = stablehlo.create_token : !stablehlo.token
  %11 = stablehlo.after_all %t, %10 : !stablehlo.token
  %12 = stablehlo.partition_id : tensor<ui32>
  %13 = stablehlo.dot_general %9, %9, contracting_dims = [1] x [1] : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x4xf32>
  %14 = stablehlo.cholesky %13, lower = true {framework.note = "odd \\22 text"} : tensor<4x4xf32>
  return %0, %1, %2, %3, %4, %11 : tensor<4x6xf32>, tensor<3x4x5xf32>, tensor<2x5xf32>, tensor<5x4xf32>, tensor<4x5xcomplex<f32>>, !stablehlo.token
}
"""

ALL = {name: text for name, text in list(globals().items()) if name.isupper() and isinstance(text, str)}
