attn.pattern @origin_given() q_origin(given) {
  %m = attn.causal
  attn.softmax union(%m)
}
