// Functions of a library that is opened at run time.
#pragma once

#include <dlfcn.h>

namespace siding::gpu {

// False if the library has none of that name.
template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace siding::gpu
