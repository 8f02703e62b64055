#include <iostream>

#include "store/tool.h"

int main(int argc, char** argv) { return siding::store::RunTool(argc, argv, std::cout, std::cerr); }
