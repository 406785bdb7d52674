// LongNet for 131,072 tokens and more: the four branches of dilated_large on every head, mixed with weights exp(lse).
//   segment lengths 4096, 8192, 16384, 32768 tokens; rates 1, 2, 4, 8; head h of H keeps residue
//   class h / ceil(H / rate)
// Kept pairs: about n w / (2 r^2) per branch and head, 3840 n in all for n of 32768 or more.
// Source: the configuration of the dilated-attention-pytorch fork for a billion tokens, mixed as in LongNet.
attn.pattern @longnet_large() {
  %a = attn.causal
  %d1 = attn.dilate %a by 2 rule(block)
  %d2 = attn.dilate %a by 4 rule(block)
  %d3 = attn.dilate %a by 8 rule(block)
  %s0 = attn.segment %a by [4096]
  %s1 = attn.segment %d1 by [8192]
  %s2 = attn.segment %d2 by [16384]
  %s3 = attn.segment %d3 by [32768]
  attn.softmax lse(%s0, %s1, %s2, %s3) gradient(detached)
}
