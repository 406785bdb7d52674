attn.pattern @"EVIL*/ #error EVIL \\"(%EVIL: i32 {attn.default = 3 : i32, attn.doc = "EVIL\0A"}) attributes {EVIL = "EVIL"} {
  %m = attn.window [%EVIL, 0]
  attn.softmax union(%m)
}
