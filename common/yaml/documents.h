// How many documents a YAML text has.
#pragma once

#include <yaml-cpp/mark.h>

#include <optional>
#include <string>

namespace siding {

// Where the second one begins; nothing: there is none. Throws what yaml-cpp throws. (YAML::LoadAll does not
// come back from some texts, such as ",": for it they have documents without end.)
std::optional<YAML::Mark> FindSecondDocument(const std::string& text);

}  // namespace siding
