#include "bench/load_bench/disk_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <stop_token>
#include <utility>

#include "common/files.h"

namespace siding {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(100);

bool AppendPage(int fd) {
  static const std::string page(4096, 'x');
  return write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size()) && fdatasync(fd) == 0;
}

}  // namespace

DiskProbe::DiskProbe(const std::string& folder, std::string what, Latencies& latencies)
    : thread_([path = folder + "/probe", what = std::move(what), &latencies](const std::stop_token& stop) {
        const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        using Clock = std::chrono::steady_clock;
        for (auto next = Clock::now(); !stop.stop_requested(); next += kEvery) {
          std::this_thread::sleep_until(next);
          const auto began = Clock::now();
          const bool done = file.valid() && AppendPage(file.get());
          latencies.Add(what, std::chrono::duration_cast<Duration>(Clock::now() - began), done);
        }
      }) {}

}  // namespace siding
