# Tests of the language and its analysis.
heddle_add_unit_test(analysis heddle_oracle)
heddle_add_unit_test(count_effort heddle_dialect)
heddle_add_unit_test(foreign_masks heddle_dialect)
heddle_add_unit_test(row_rate heddle_oracle)
heddle_add_unit_test(cells_at_stride heddle_dialect)
