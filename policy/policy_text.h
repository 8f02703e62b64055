// A policy back as text: what is in force, and what a new one changes.
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"

namespace siding {

// A policy file that says the same, with every key; a class and a rule on a line each.
std::string ToYaml(const Policy& policy);

// The lines of ToYaml that differ, in their order: "-margin: 1s", "+margin: 2s". None: they say the same.
std::vector<std::string> Changes(const Policy& before, const Policy& after);

}  // namespace siding
