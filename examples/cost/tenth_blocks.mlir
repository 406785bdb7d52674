// Every tenth block of 128 keys, and a query's own block, as far as they are earlier: a tenth of causal.
attn.pattern @tenth_blocks() {
  %every = attn.stride k by 10 at 0
  %own = attn.window [0, 0]
  %u = attn.or %every, %own
  %b = attn.blocks %u by [128]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
