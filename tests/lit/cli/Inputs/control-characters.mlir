attn.pattern @p() {
  %c = attn.causal /* [31m ‮  */ attn.oops
}
