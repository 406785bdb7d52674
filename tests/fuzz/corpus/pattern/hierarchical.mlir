attn.pattern @hierarchical() {
  %w0 = attn.window [1023, 0]
  %w1 = attn.window [2047, 0]
  %w2 = attn.window [4095, 0]
  %w3 = attn.window [8191, 0]
  %w4 = attn.window [16383, 0]
  %w5 = attn.window [32767, 0]
  %n0 = attn.not %w0
  %n1 = attn.not %w1
  %n2 = attn.not %w2
  %n3 = attn.not %w3
  %n4 = attn.not %w4
  %k1 = attn.stride k by 2 at 0
  %k2 = attn.stride k by 4 at 0
  %k3 = attn.stride k by 8 at 0
  %k4 = attn.stride k by 16 at 0
  %k5 = attn.stride k by 32 at 0
  %l1 = attn.and %w1, %n0, %k1
  %l2 = attn.and %w2, %n1, %k2
  %l3 = attn.and %w3, %n2, %k3
  %l4 = attn.and %w4, %n3, %k4
  %l5 = attn.and %w5, %n4, %k5
  attn.softmax lse(%w0, %l1, %l2, %l3, %l4, %l5)
}
