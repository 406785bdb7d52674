// LongNet, small enough to check by hand: three causal branches on every head, mixed with weights exp(lse).
//   segment lengths 4, 8, 16 tokens; rates 1, 2, 4; head h of H keeps residue class h / ceil(H / rate) of a branch
// Kept pairs: about n w / (2 r^2) per branch and head.
// Source: fkodom/dilated-attention-pytorch, tests of LongNet (n = 16).
attn.pattern @longnet_tiny() {
  %a = attn.causal
  %d1 = attn.dilate %a by 2 rule(block)
  %d2 = attn.dilate %a by 4 rule(block)
  %s0 = attn.segment %a by [4]
  %s1 = attn.segment %d1 by [8]
  %s2 = attn.segment %d2 by [16]
  attn.softmax lse(%s0, %s1, %s2) gradient(detached)
}
