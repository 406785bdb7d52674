attn.pattern @bad() q_origin(middle) {
  %m = attn.full
  attn.softmax union(%m)
}
