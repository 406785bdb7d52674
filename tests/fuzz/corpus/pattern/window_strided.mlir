attn.pattern @window_strided(%left: i32 {attn.default = 1023 : i32, attn.min = 0 : i32,
                                         attn.doc = "keys before the query, in tokens"}) {
  %near = attn.window [%left, 0]
  %c = attn.causal
  %every = attn.stride k by 32 at 31
  %far = attn.and %every, %c
  %m = attn.or %near, %far
  attn.softmax union(%m)
}
