// LongNet: every head runs every branch; the branch outputs are mixed with weights exp(lse), which is one softmax
// over the multiset union of the branches (a key in two branches counts twice). Positions count from the segment
// start, a short last segment has no padding keys.
//   segment lengths 2048, 4096 tokens; rates 1, 2; head h of H keeps residue class h / ceil(H / rate)
// Kept pairs: about n w / 2 in the first branch and n / 2 * w / 4 in the second, per head.
// Source: Ding et al., "LongNet" (2023), as computed by microsoft/torchscale with two corrections (short last
// segment, positions never move); branch weights carry no gradient there.
attn.pattern @longnet() {
  %c = attn.causal
  %far = attn.dilate %c by 2 rule(block)
  %b0 = attn.segment %c by [2048]
  %b1 = attn.segment %far by [4096]
  attn.softmax lse(%b0, %b1) gradient(detached)
}
