  %n96 = attn.dilate %n96 by 3 rule(group)
    