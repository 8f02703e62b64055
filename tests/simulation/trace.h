// What happened in a run: one line each, added up into a hash, and printed if somebody wants to read it.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace siding::simulation {

// Not thread-safe.
class Trace {
 public:
  Trace(const Clock& clock, bool print) : clock_(&clock), begun_(clock.Now()), print_(print) {}

  // `who`: "controller", "n1", "world".
  template <class... Parts>
  void operator()(const std::string& who, const Parts&... parts) {
    Line(who, absl::StrCat(parts...));
  }
  uint64_t hash() const { return hash_; }
  // Set by the first call; what happens after that does not matter any more.
  void Violate(const std::string& what) {
    if (!violation_.empty()) return;
    violation_ = absl::StrCat("after ", FormatDuration(clock_->Now() - begun_), ": ", what);
    Line("VIOLATION", what);
  }
  const std::string& violation() const { return violation_; }

 private:
  void Line(const std::string& who, const std::string& text) {
    const Duration at = clock_->Now() - begun_;
    Add(&at, sizeof at);
    Add(who.data(), who.size());
    Add(text.data(), text.size());
    if (print_) std::printf("%12.6f %-10s %s\n", ToSeconds(at), who.c_str(), text.c_str());
  }
  // FNV-1a.
  void Add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3ULL;
  }

  const Clock* clock_;
  const Time begun_;
  const bool print_;
  uint64_t hash_ = 0xCBF29CE484222325ULL;
  std::string violation_;
};

}  // namespace siding::simulation
