// Longformer: a window around every query, and global tokens that see and are seen by everything.
//   half     tokens to each side of the query
//   globals  tokens at the start that are global, rows and columns
// Kept pairs: about n (2 half + 1) + 2 n globals per head.
// Source: Beltagy, Peters, Cohan, "Longformer: The Long-Document Transformer" (2020).
attn.pattern @longformer(%half: i32 {attn.default = 256 : i32, attn.doc = "tokens to each side"},
                         %globals: i32 {attn.default = 64 : i32, attn.doc = "global tokens at the start"}) {
  %w = attn.window [%half, %half]
  %r = attn.rows [%globals, 0]
  %k = attn.cols [%globals, 0]
  %m = attn.or %w, %r, %k
  attn.softmax union(%m)
}
