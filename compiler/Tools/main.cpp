#include "compiler/Tools/Verb.h"

int main(int argc, char **argv) { heddle::cli::runCommandLine(argc, argv); }
