attn.pattern @nothing() {
}
