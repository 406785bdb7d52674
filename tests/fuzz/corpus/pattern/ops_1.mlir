attn.pattern @causal_from_the_end() q_origin(end) {
  %m = attn.causal
  attn.softmax union(%m)
}
