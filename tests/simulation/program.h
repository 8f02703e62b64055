// What a job's command does in a simulated world: it counts up to a number.
#pragma once

#include <string>
#include <vector>

#include "common/units.h"
#include "model/job.h"

namespace siding::simulation {

struct Program {
  Duration work{0};        // of every rank
  int fails_at_rank = -1;  // this one exits with 1, when it has done half of it
  bool heeds_sigterm = true;
  Duration save_takes{0};  // after its signal
  bool exits_after_save = false;
  Bytes memory;
};

// A job names its program by its number: command = {"work", "3"}.
inline const Program& ProgramOf(const std::vector<Program>& programs, const std::string& number) {
  return programs.at(std::stoul(number));
}

}  // namespace siding::simulation
