// What a report of a fault needs, in one file: texts by name, and one that says what each of them is. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/units.h"

namespace siding::cli {

struct BundleEntry {
  std::string name;  // "controller/nodes.json"
  std::string what;  // one line for people
  std::string text;
  std::string missing;  // why there is no text; empty: there is
};

// The text that says what is in it.
std::string ContentsOf(const std::vector<BundleEntry>& entries, Time now);

// The entries that have a text, as files below `folder`, and the contents as its README.txt: an archive in
// the format ustar (POSIX.1), compressed by gzip. Names are of up to 99 characters.
std::string Pack(const std::string& folder, const std::vector<BundleEntry>& entries, Time now);

// Of a configuration: paths and queries of addresses, and users in them, are left out, as they may be secret.
std::string WithoutSecretUrls(const std::string& text);

// The end of a text that is longer than `most`, from a line's beginning on.
std::string EndOf(const std::string& text, size_t most);

}  // namespace siding::cli
