// The test jobs' command line: whole numbers, each given as --name VALUE.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

struct Option {
  const char* name;     // without the dashes
  int* value;           // holds the default
  int least;            // the smallest value that makes sense
  const char* meaning;  // for the usage
};

// No option may be larger: sizes and lengths of time made from one still fit their types.
constexpr int kMostOption = 1'000'000'000;

inline int Usage(const char* program, std::initializer_list<Option> options, std::FILE* to) {
  std::fprintf(to, "usage: %s [--OPTION NUMBER]...\n", program);
  for (const Option& option : options) {
    std::fprintf(to, "  --%-10s %s (default %d)\n", option.name, option.meaning, *option.value);
  }
  return to == stdout ? 0 : 2;
}

// Reads `argv` into the options' values. Ends the program with the usage if it is asked for or there is an
// option that is not known, and with a message if a value is not what was expected.
inline void ParseOptions(int argc, char** argv, std::initializer_list<Option> options) {
  for (int i = 1; i < argc; i += 2) {
    if (std::strcmp(argv[i], "--help") == 0) std::exit(Usage(argv[0], options, stdout));
    const Option* named = nullptr;
    for (const Option& option : options) {
      if (std::strncmp(argv[i], "--", 2) == 0 && std::strcmp(argv[i] + 2, option.name) == 0) named = &option;
    }
    if (named == nullptr) {
      std::fprintf(stderr, "%s: no option %s\n", argv[0], argv[i]);
      std::exit(Usage(argv[0], options, stderr));
    }
    const char* const text = i + 1 < argc ? argv[i + 1] : "";
    const char* const end = text + std::strlen(text);
    int value = 0;
    const auto [read, error] = std::from_chars(text, end, value);
    if (error != std::errc() || read != end || value < named->least || value > kMostOption) {
      std::fprintf(stderr, "%s: --%s: expected a whole number from %d to %d, not '%s'\n", argv[0],
                   named->name, named->least, kMostOption, text);
      std::exit(2);
    }
    *named->value = value;
  }
}
