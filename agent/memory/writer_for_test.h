// A process that does to its memory what it is told, and nothing else.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>

#include "agent/memory/pagemap.h"
#include "agent/memory/private_memory.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {

class Writer {
 public:
  Writer() {
    malloc_trim(0);  // it inherits what is left
    int orders[2], answers[2];
    EXPECT_EQ(pipe2(orders, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
    orders_ = UniqueFd(orders[1]);
    answers_ = UniqueFd(answers[0]);
    const UniqueFd in(orders[0]), out(answers[1]);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Obey(in.get(), out.get());
  }
  ~Writer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  pid_t pid() const { return pid_; }
  // Until Continue(). Else it may still be on its way to the next order.
  void Stop() {
    kill(pid_, SIGSTOP);
    EXPECT_EQ(waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  void Continue() { kill(pid_, SIGCONT); }
  uint64_t Map(uint64_t pages) { return Do({'m', 0, pages * PageSize()}); }
  uint64_t MapAt(uint64_t at, uint64_t pages) { return Do({'m', at, pages * PageSize()}); }
  void Unmap(uint64_t at, uint64_t pages) { Do({'u', at, pages * PageSize()}); }
  // To where the kernel likes, or, with `to`, there.
  uint64_t Move(uint64_t at, uint64_t pages, uint64_t new_pages, uint64_t to = 0) {
    return Do({'r', at, pages * PageSize(), new_pages * PageSize(), to});
  }
  void Drop(uint64_t at, uint64_t pages) { Do({'d', at, pages * PageSize()}); }
  void NoFork(uint64_t at, uint64_t pages) { Do({'n', at, pages * PageSize()}); }
  void Hide(uint64_t at, uint64_t pages) { Do({'h', at, pages * PageSize()}); }
  // Of so many pages each.
  void Store(uint64_t at, uint64_t pages, uint64_t value) { Do({'s', at, pages * PageSize(), value}); }
  // For asynchronous I/O.
  void MakeRing() { EXPECT_EQ(Do({'a'}), 0u); }
  // One of its own, which it does not keep.
  UniqueFd Userfaultfd() {
    const auto fd = static_cast<int>(Do({'f'}));
    const auto process = OpenPidfd(pid_);
    UniqueFd taken(static_cast<int>(syscall(SYS_pidfd_getfd, process->get(), fd, 0)));
    Do({'c', static_cast<uint64_t>(fd)});
    return taken;
  }

  // All of its private anonymous memory.
  std::map<uint64_t, std::string> Memory() const {
    std::map<uint64_t, std::string> pages;
    const UniqueFd mem = OpenIn("mem"), pagemap = OpenIn("pagemap");
    std::string page(PageSize(), '\0');
    const ProcessMaps maps = ReadMaps(pid_).value();
    for (const MemoryArea& area : maps.areas) {
      for (uint64_t at = area.begin; at < area.end; at += PageSize()) {
        uint64_t entry = 0;
        const auto where = static_cast<off_t>(at / PageSize() * sizeof entry);
        if (pread(pagemap.get(), &entry, sizeof entry, where) != sizeof entry || entry >> 62 == 0) continue;
        if (pread(mem.get(), page.data(), page.size(), static_cast<off_t>(at)) ==
            static_cast<ssize_t>(page.size()))
          pages[at] = page;
      }
    }
    return pages;
  }

 private:
  struct Order {
    char what = 0;
    uint64_t a = 0, b = 0, c = 0, d = 0;
  };

  UniqueFd OpenIn(const std::string& name) const {
    return UniqueFd(open(("/proc/" + std::to_string(pid_) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  }

  uint64_t Do(const Order& order) {
    uint64_t answer = 0;
    EXPECT_EQ(write(orders_.get(), &order, sizeof order), static_cast<ssize_t>(sizeof order));
    EXPECT_EQ(read(answers_.get(), &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
    return answer;
  }

  // After a fork: nothing but system calls.
  [[noreturn]] static void Obey(int in, int out) {
    Order order;
    while (read(in, &order, sizeof order) == static_cast<ssize_t>(sizeof order)) {
      void* const at = reinterpret_cast<void*>(order.a);
      uint64_t answer = 0;
      switch (order.what) {
        case 'm':
          answer = reinterpret_cast<uint64_t>(
              mmap(at, order.b, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (order.a != 0 ? MAP_FIXED : 0), -1, 0));
          break;
        case 'u':
          munmap(at, order.b);
          break;
        case 'r':
          answer = reinterpret_cast<uint64_t>(
              order.d != 0 ? mremap(at, order.b, order.c, MREMAP_MAYMOVE | MREMAP_FIXED, order.d)
                           : mremap(at, order.b, order.c, MREMAP_MAYMOVE));
          break;
        case 'd':
          madvise(at, order.b, MADV_DONTNEED);
          break;
        case 'n':
          madvise(at, order.b, MADV_DONTFORK);
          break;
        case 'h':
          mprotect(at, order.b, PROT_NONE);
          break;
        case 's':
          for (uint64_t i = 0; i < order.b; i += PageSize())
            *reinterpret_cast<volatile uint64_t*>(order.a + i) = order.c;
          break;
        case 'f':
          answer = static_cast<uint64_t>(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
          break;
        case 'a': {
          unsigned long ring = 0;
          answer = static_cast<uint64_t>(syscall(SYS_io_setup, 8, &ring));
          break;
        }
        case 'c':
          close(static_cast<int>(order.a));
          break;
        default:
          _exit(1);
      }
      if (write(out, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) break;
    }
    _exit(0);
  }

  UniqueFd orders_, answers_;
  pid_t pid_ = -1;
};

}  // namespace siding
