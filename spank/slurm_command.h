// The Slurm command (sbatch, salloc or srun) that has loaded this plugin: its options, read and set by the
// functions that it uses itself. They are not part of Slurm's API, so they are looked up at run time, and
// another version of Slurm may lack them.
#pragma once

namespace siding::spank {

struct SlurmCommand {
  void* options = nullptr;                                                               // slurm_opt_t
  bool (*is_set)(void* options, const char* name) = nullptr;                             // slurm_option_isset
  char* (*get)(void* options, const char* name) = nullptr;                               // slurm_option_get
  int (*set)(void* options, const char* name, const char* value, bool early) = nullptr;  // slurm_option_set

  bool complete() const {
    return options != nullptr && is_set != nullptr && get != nullptr && set != nullptr;
  }
};

SlurmCommand CommandOfThisProcess();

// As Slurm writes it, whether it comes from the command line, the environment or the script; null: not given.
// Slurm's own allocator made the text: it is left to the end of the process, which is near.
const char* Given(const SlurmCommand& command, const char* name);

// False: the command does not take it.
bool Give(const SlurmCommand& command, const char* name, const char* value);

}  // namespace siding::spank
