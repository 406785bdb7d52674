attn.pattern @block_dilated_heads(%reach: i32 {attn.default = 8 : i32}) {
  %w = attn.window [%reach, %reach]
  %two = attn.dilate %w by 2 rule(every)
  %four = attn.dilate %w by 4 rule(every)
  %eight = attn.dilate %w by 8 rule(every)
  %h = attn.heads %w, %two, %four, %eight
  %m = attn.blocks %h by [128]
  attn.softmax union(%m)
}
