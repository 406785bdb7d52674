attn.pattern @document_window(
    %cu_q: memref<?xi32>,
    %cu_k: memref<?xi32>,
    %used_k: memref<?xi32>,
    %left: i32 {attn.default = 1023 : i32}) q_origin(end) {
  %w = attn.window [%left, 0]
  %m = attn.documents %w at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used_k : memref<?xi32>
  attn.softmax union(%m)
}
