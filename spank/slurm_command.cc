#include "spank/slurm_command.h"

#include <dlfcn.h>

namespace siding::spank {
namespace {

template <class T>
void Find(const char* name, T*& place) {
  place = reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

SlurmCommand CommandOfThisProcess() {
  SlurmCommand command;
  command.options = dlsym(RTLD_DEFAULT, "opt");
  Find("slurm_option_isset", command.is_set);
  Find("slurm_option_get", command.get);
  Find("slurm_option_set", command.set);
  return command;
}

const char* Given(const SlurmCommand& command, const char* name) {
  return command.is_set(command.options, name) ? command.get(command.options, name) : nullptr;
}

bool Give(const SlurmCommand& command, const char* name, const char* value) {
  return command.set(command.options, name, value, false) == 0;
}

}  // namespace siding::spank
