// A real sidingd with a folder of its own, as a child of the benchmark, and what it uses.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace siding {

// CPU time of a process so far, user and system.
double CpuSecondsOf(pid_t pid);
// Of the loopback, on which nobody listened a moment ago; 0: there is none.
int FreePort();

// Not thread-safe, but for the constant calls. It ends with this object, and the folder is removed.
class ControllerProcess {
 public:
  // `program` is the path of sidingd; `arguments` follow on those for its socket and state.
  ControllerProcess(const std::string& program, const std::vector<std::string>& arguments);
  ~ControllerProcess();
  ControllerProcess(const ControllerProcess&) = delete;
  ControllerProcess& operator=(const ControllerProcess&) = delete;

  const std::string& folder() const { return folder_; }
  std::string socket() const { return folder_ + "/socket"; }
  std::string log() const { return folder_ + "/log"; }
  bool IsRunning() const;
  double CpuSeconds() const { return CpuSecondsOf(pid_); }
  double ResidentMiB() const { return StatusMiB("VmRSS:"); }
  double PeakMiB() const { return StatusMiB("VmHWM:"); }
  int Threads() const;
  int Descriptors() const;
  double JournalMiB() const;  // with its write-ahead log

 private:
  double StatusMiB(const std::string& field) const;

  std::string folder_;
  pid_t pid_ = 0;
};

}  // namespace siding
