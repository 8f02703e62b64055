// A program's page of the manual, in roff, from the same text as its --help: neither can fall behind the
// other. For programs that read their command line by CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace siding {

struct ManualPage {
  std::string name;     // of the program
  int section = 1;      // of the manual: 1 for everybody's programs, 8 for administrators'
  std::string version;  // of the program
  std::string see;      // where to read on, one line
};

std::string ToRoff(const CLI::App& app, const ManualPage& page);

// `--man`, which no help lists: prints the page, and nothing else is done. To be called when all else has
// been added, and `app` must outlive the parsing.
void AddManual(CLI::App& app, ManualPage page);

}  // namespace siding
