#include "cli/program.h"

int main(int argc, char** argv) { return siding::cli::Run(argc, argv); }
