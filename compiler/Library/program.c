/* program.c - the command line of an installed libheddle, as a program */
#include "compiler/Library/heddle_compiler.h"

int main(int argc, char **argv) {
  heddle_command_line(argc, argv);
  return 0;
}
