# Tests of the language and its analysis.
heddle_add_unit_test(analysis heddle_oracle)
