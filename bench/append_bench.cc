// What one append to the journal takes, in both ways of writing it, below a folder of the disk in question:
// build/release/bin/append_bench FOLDER [APPENDS]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "controller/journal/journal.h"
#include "controller/journal/lease.h"

namespace siding {
namespace {

double Milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

absl::Status Measure(const std::string& folder, bool shared, int appends) {
  const std::string path = absl::StrFormat("%s/journal-bench-%d.db", folder, getpid());
  auto lease = Lease::Open({.journal = path, .shared = shared});
  if (!lease.ok()) return lease.status();
  (*lease)->Look();
  auto journal = OpenSqliteJournal(path, **lease);
  if (!journal.ok()) return journal.status();
  std::vector<double> took;
  for (int i = 1; i <= appends; ++i) {
    const Event event{i, FromMicros(i), JobId(1), Noted{std::string(200, 'x')}};
    const auto began = std::chrono::steady_clock::now();
    if (absl::Status status = (*journal)->Append({event}); !status.ok()) return status;
    took.push_back(Milliseconds(std::chrono::steady_clock::now() - began));
  }
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < appends; ++i) {
    if (absl::Status status = (*journal)->Confirm(); !status.ok()) return status;
  }
  const double confirm = Milliseconds(std::chrono::steady_clock::now() - began) / appends;
  std::sort(took.begin(), took.end());
  std::cout << absl::StrFormat("%-22s append: median %6.2f ms, 99 %% within %6.2f ms; confirm: %.2f ms\n",
                               shared ? "shared (TRUNCATE)" : "one host (WAL)", took[took.size() / 2],
                               took[took.size() * 99 / 100], confirm);
  journal->reset();
  lease->reset();
  for (const char* end : {"", "-wal", "-shm", "-journal", ".lease"}) std::filesystem::remove(path + end);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "/tmp";
  const int appends = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1000;
  for (const bool shared : {false, true}) {
    if (absl::Status status = Measure(folder, shared, appends); !status.ok()) {
      std::cerr << "append_bench: " << std::string(status.message()) << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
