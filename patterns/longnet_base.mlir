// LongNet, base configuration: five causal branches on every head, mixed with weights exp(lse): one softmax over their
// multiset union. Positions count from the segment start, a short last segment has no padding keys.
//   segment lengths 2048, 4096, 8192, 16384, 32768 tokens; rates 1, 2, 4, 6, 12; head h of H keeps residue class
//   h / ceil(H / rate) of a branch
// Kept pairs: about n w / (2 r^2) per branch and head, 2133 n in all for n of 32768 or more.
// Source: fkodom/dilated-attention-pytorch, LongNet; Ding et al., "LongNet" (2023). 16384 is no multiple of 6:
// torchscale pads every segment then and moves positions, here they never move.
attn.pattern @longnet_base() {
  %c = attn.causal
  %d1 = attn.dilate %c by 2 rule(block)
  %d2 = attn.dilate %c by 4 rule(block)
  %d3 = attn.dilate %c by 6 rule(block)
  %d4 = attn.dilate %c by 12 rule(block)
  %b0 = attn.segment %c by [2048]
  %b1 = attn.segment %d1 by [4096]
  %b2 = attn.segment %d2 by [8192]
  %b3 = attn.segment %d3 by [16384]
  %b4 = attn.segment %d4 by [32768]
  attn.softmax lse(%b0, %b1, %b2, %b3, %b4) gradient(detached)
}
