attn.pattern @boxes() {
  %b0 = attn.box [0, 10, 0, 10]
  %b1 = attn.box [20, 30, 0, 10]
  %b2 = attn.box [40, 50, 0, 10]
  %b3 = attn.box [60, 70, 0, 10]
  %b4 = attn.box [80, 90, 0, 10]
  %b5 = attn.box [100, 110, 0, 10]
  %b6 = attn.box [120, 130, 0, 10]
  %b7 = attn.box [140, 150, 0, 10]
  %b8 = attn.box [160, 170, 0, 10]
  %b9 = attn.box [180, 190, 0, 10]
  %m = attn.or %b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7, %b8, %b9
  attn.softmax union(%m)
}
