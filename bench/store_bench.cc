// What does the store add to writing a checkpoint? Writes the same bytes to the same disk twice a round, as a
// plain file with fsync and as an image of the store (hashed while it grows, sealed, committed), then
// verifies the image.
//
// With a folder for plain files, say in memory, the image is encrypted, and decrypted again in the end.
//
//   store_bench [FOLDER [MIB [ROUNDS [PLAIN]]]]     default: . 1024 9, not encrypted
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/files.h"
#include "store/secret_key.h"
#include "store/store.h"

namespace {

using siding::UniqueFd;

constexpr size_t kWrite = 1 << 20;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "store_bench: %s\n", what.c_str());
  std::exit(1);
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// As CRIU does it: appended in pieces.
UniqueFd WritePages(const std::string& path, const std::string& data) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) Die("cannot create " + path);
  for (size_t at = 0; at < data.size(); at += kWrite) {
    const size_t size = std::min(kWrite, data.size() - at);
    if (write(fd.get(), data.data() + at, size) != static_cast<ssize_t>(size)) Die("cannot write " + path);
  }
  return fd;
}

// Of all threads; unlike time, it says the same on a machine that is busy with other things.
double CpuSeconds() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

struct Round {
  double plain_write = 0, plain_sync = 0, write = 0, seal = 0, commit = 0, verify = 0, decrypt = 0;
  double store_cpu = 0, decrypt_cpu = 0;
  double Plain() const { return plain_write + plain_sync; }
  double Store() const { return write + seal + commit; }
};

void RunPlain(const std::string& folder, const std::string& data, Round& round) {
  const std::string plain = folder + "/plain.img";
  UniqueFd fd;
  round.plain_write = Seconds([&] { fd = WritePages(plain, data); });
  round.plain_sync = Seconds([&] {
    if (fsync(fd.get()) != 0) Die("cannot sync " + plain);
  });
  fd.Reset();
  unlink(plain.c_str());
  ::sync();  // the other half starts with a quiet disk
}

void RunStore(siding::ImageStore& store, const std::string& plain, const std::string& data, Round& round) {
  const siding::ImageKey key{siding::CheckpointId("1.1"), 0};
  auto draft = store.Begin(key);
  if (!draft.ok()) Die(draft.status().ToString());
  const double before = CpuSeconds();
  round.write = Seconds([&] { WritePages((*draft)->path() + "/pages-1.img", data); });
  round.seal = Seconds([&] {
    if (const auto sealed = (*draft)->Seal({}); !sealed.ok()) Die(sealed.status().ToString());
  });
  round.commit = Seconds([&] {
    if (const auto committed = (*draft)->Commit(); !committed.ok()) Die(committed.ToString());
  });
  round.store_cpu = CpuSeconds() - before;
  round.verify = Seconds([&] {
    if (const auto verified = store.Verify(key); !verified.ok()) Die(verified.status().ToString());
  });
  const double before_decryption = CpuSeconds();
  round.decrypt = Seconds([&] {
    if (const auto decrypted = store.Decrypt(key, plain + "/restore"); !decrypted.ok())
      Die(decrypted.status().ToString());
  });
  round.decrypt_cpu = CpuSeconds() - before_decryption;
  std::filesystem::remove_all(plain + "/restore");
  if (const auto deleted = store.Delete(key); !deleted.ok()) Die(deleted.ToString());
  ::sync();
}

double Median(const std::vector<Round>& rounds, const std::function<double(const Round&)>& value) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Round& round : rounds) values.push_back(value(round));
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::string parent = argc > 1 ? argv[1] : ".";
  const size_t mib = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1024;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  if (mib == 0 || rounds <= 0) Die("usage: store_bench [FOLDER [MIB [ROUNDS [PLAIN]]]]");

  std::string folder = parent + "/store-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) Die("cannot make a folder in " + parent);
  siding::StoreOptions options;
  if (argc > 4) {
    options.plain_folder = std::string(argv[4]) + "/store-bench";
    const auto key = siding::store::ParseSecretKey(std::string(64, '1'));
    options.keys = std::make_shared<siding::store::KeyRing>(*key);
  }
  const std::string& in_plain = options.plain_folder;
  auto store = siding::OpenDirectoryStore(folder + "/store", options);
  if (!store.ok()) Die(store.status().ToString());
  std::string data(mib << 20, '\0');
  uint64_t x = 88172645463325252u;  // xorshift: bytes that no disk can compress
  for (size_t i = 0; i + 8 <= data.size(); i += 8) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    std::copy_n(reinterpret_cast<const char*>(&x), 8, &data[i]);
  }

  // Not counted: the first gigabyte pays for memory and disk blocks that were not used before.
  Round warm_up;
  RunPlain(folder, data, warm_up);
  RunStore(**store, in_plain, data, warm_up);

  std::vector<Round> results;
  std::printf("%zu MiB in %s%s\n%6s | %8s %8s %8s | %8s %8s %8s %8s | %8s %8s\n", mib, parent.c_str(),
              in_plain.empty() ? "" : ", encrypted", "round", "plain", "write", "fsync", "store", "write",
              "seal", "commit", "verify", "decrypt");
  for (int i = 0; i < rounds; ++i) {
    // Who goes first changes, since the first one finds the disk and the memory in another state.
    Round r;
    if (i % 2 == 0) RunPlain(folder, data, r);
    RunStore(**store, in_plain, data, r);
    if (i % 2 == 1) RunPlain(folder, data, r);
    results.push_back(r);
    std::printf("%6d | %7.3fs %7.3fs %7.3fs | %7.3fs %7.3fs %7.3fs %7.4fs | %7.3fs %7.3fs\n", i + 1,
                r.Plain(), r.plain_write, r.plain_sync, r.Store(), r.write, r.seal, r.commit, r.verify,
                r.decrypt);
  }
  std::filesystem::remove_all(folder);
  if (!in_plain.empty()) std::filesystem::remove_all(in_plain);
  const double plain = Median(results, [](const Round& r) { return r.Plain(); });
  const double total = Median(results, [](const Round& r) { return r.Store(); });
  const double verify = Median(results, [](const Round& r) { return r.verify; });
  const double decrypt = Median(results, [](const Round& r) { return r.decrypt; });
  const double store_cpu = Median(results, [](const Round& r) { return r.store_cpu; });
  const double decrypt_cpu = Median(results, [](const Round& r) { return r.decrypt_cpu; });
  const double size = static_cast<double>(mib);
  std::printf(
      "median: store %.3f s (%.0f MiB/s; %.3f s of CPU) = %.2f x plain %.3f s (%.0f MiB/s); verify %.3f s "
      "(%.0f MiB/s)",
      total, size / total, store_cpu, total / plain, plain, size / plain, verify, size / verify);
  if (!in_plain.empty()) {
    std::printf("; decrypt %.3f s (%.0f MiB/s; %.3f s of CPU)", decrypt, size / decrypt, decrypt_cpu);
  }
  std::printf("\n");
}
