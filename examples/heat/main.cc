// heat: a 2-D heat solver with OpenMP that can run as a gang of ranks. See --help.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/heat/exchange.h"
#include "examples/heat/file_exchange.h"
#include "examples/heat/fnv.h"
#include "examples/heat/solver.h"
#include "examples/heat/tcp_exchange.h"

namespace heat {
namespace {

constexpr int kPort = 7100;  // if none is said
constexpr char kUsage[] =
    "usage: heat --out FILE [--size N] [--steps N] [--memory MIB] [--exchange DIR | --exchange tcp]\n"
    "            [--port P] [--every K]\n"
    "  --size N        the plate has N x N cells (default 512)\n"
    "  --steps N       time steps (default 6000)\n"
    "  --memory MIB    memory to hold beside the plate, checked at the end (default 0)\n"
    "  --exchange DIR  folder that all ranks see; this or tcp is needed with more than one\n"
    "  --exchange tcp  ranks connect to each other once and for all (a folder of that name: ./tcp)\n"
    "  --port P        with tcp: rank 0 listens on port P, rank 1 on P + 1 and so on (default 7100)\n"
    "  --every K       steps between two exchanges (default 8)\n"
    "The environment says which part of a gang this is: SIDING_RANK, SIDING_NODES, SIDING_JOB_ID,\n"
    "and for tcp SIDING_GANG_ADDRS, the IPv4 addresses of all ranks with commas, the first that of rank 0.\n"
    "Rank 0 writes the digest of the whole plate to FILE, as its first word.\n";

struct Options {
  std::string out, exchange, job = "0", addresses;
  int size = 512, steps = 6000, memory_mib = 0, every = 8, port = 0, rank = 0, ranks = 1;
};

int Number(const std::string& name, const std::string& text, int minimum) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < minimum || value > 1'000'000'000) {
    throw std::invalid_argument(name + ": expected a number of at least " + std::to_string(minimum) +
                                ", got \"" + text + "\"");
  }
  return static_cast<int>(value);
}

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name + ": expected a value after it");
    const std::string value = argv[i + 1];
    if (name == "--out")
      o.out = value;
    else if (name == "--exchange")
      o.exchange = value;
    else if (name == "--size")
      o.size = Number(name, value, 3);
    else if (name == "--steps")
      o.steps = Number(name, value, 0);
    else if (name == "--memory")
      o.memory_mib = Number(name, value, 0);
    else if (name == "--port")
      o.port = Number(name, value, 1);
    else if (name == "--every")
      o.every = Number(name, value, 1);
    else
      throw std::invalid_argument("unknown option " + name);
  }
  const auto env = [](const char* name, std::string fallback) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::string(value) : std::move(fallback);
  };
  o.ranks = Number("SIDING_NODES", env("SIDING_NODES", "1"), 1);
  o.rank = Number("SIDING_RANK", env("SIDING_RANK", "0"), 0);
  o.job = env("SIDING_JOB_ID", "0");
  o.addresses = env("SIDING_GANG_ADDRS", "");
  if (o.out.empty()) throw std::invalid_argument("--out is missing");
  if (o.rank >= o.ranks) throw std::invalid_argument("SIDING_RANK must be below SIDING_NODES");
  if (o.ranks > 1 && o.exchange.empty())
    throw std::invalid_argument("--exchange: expected a folder or tcp, for there are several ranks");
  if (o.ranks > 1 && o.size / o.ranks < o.every)
    throw std::invalid_argument("--every must not exceed a rank's rows");
  if (o.port != 0 && o.exchange != "tcp")
    throw std::invalid_argument("--port: expected --exchange tcp with it");
  if (o.port == 0) o.port = kPort;
  return o;
}

// Memory that belongs to the program's state: touched at the start, compared at the end.
class Ballast {
 public:
  explicit Ballast(int mib) : words_(static_cast<size_t>(mib) << 17) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] = Word(i);
  }
  bool Intact() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != Word(i)) return false;
    }
    return true;
  }

 private:
  static uint64_t Word(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    return i ^ i >> 29;
  }
  std::vector<uint64_t> words_;
};

std::vector<double> Rows(const Block& block, int first, int last) {
  return {block.Row(first),
          block.Row(first) + static_cast<size_t>(last - first) * static_cast<size_t>(block.size())};
}

int FirstRow(const Options& o, int rank) {
  return static_cast<int>(static_cast<int64_t>(o.size) * rank / o.ranks);
}

// Gives the neighbours the rows next to them and takes theirs.
void ExchangeHalo(const Options& o, Exchange& exchange, Block& block, int64_t number) {
  Halo own;
  if (o.rank > 0) own.above = Rows(block, block.first(), block.first() + o.every);
  if (o.rank + 1 < o.ranks) own.below = Rows(block, block.last() - o.every, block.last());
  const Halo theirs = exchange.Swap(number, own);
  if (!theirs.above.empty())
    std::copy(theirs.above.begin(), theirs.above.end(), block.Row(block.first() - o.every));
  if (!theirs.below.empty()) std::copy(theirs.below.begin(), theirs.below.end(), block.Row(block.last()));
}

std::unique_ptr<Exchange> NewExchange(const Options& o) {
  if (o.ranks == 1) return nullptr;
  if (o.exchange == "tcp")
    return std::make_unique<TcpExchange>(Endpoints(o.addresses, o.port, o.ranks), o.rank);
  return std::make_unique<FileExchange>(o.exchange, o.job, o.rank);
}

void WriteDigest(const Options& o, Exchange* exchange, const Block& block) {
  const auto own = Rows(block, block.first(), block.last());
  if (o.rank > 0) return exchange->GiveBlock(own);
  uint64_t hash = Fnv1a(own.data(), own.size() * sizeof(double));
  for (int rank = 1; rank < o.ranks; ++rank) {
    const size_t count =
        static_cast<size_t>(FirstRow(o, rank + 1) - FirstRow(o, rank)) * static_cast<size_t>(o.size);
    const auto rows = exchange->TakeBlock(rank, count);
    hash = Fnv1a(rows.data(), rows.size() * sizeof(double), hash);
  }
  char line[128];
  std::snprintf(line, sizeof line, "%016llx heat size=%d steps=%d\n", static_cast<unsigned long long>(hash),
                o.size, o.steps);
  WriteWhole(o.out, line);
}

int Run(const Options& o) {
  const Ballast ballast(o.memory_mib);
  Block block(o.size, FirstRow(o, o.rank), FirstRow(o, o.rank + 1), o.ranks > 1 ? o.every : 0);
  const std::unique_ptr<Exchange> exchange = NewExchange(o);

  const int report = std::max(o.steps / 20, 1);
  for (int step = 0; step < o.steps; ++step) {
    if (exchange && step % o.every == 0) ExchangeHalo(o, *exchange, block, step / o.every);
    block.Step(exchange ? o.every - 1 - step % o.every : 0);
    if ((step + 1) % report == 0) {
      std::printf("heat rank %d: step %d of %d, mean %.9f\n", o.rank, step + 1, o.steps, block.Mean());
      std::fflush(stdout);
    }
  }
  if (!ballast.Intact()) throw std::runtime_error("memory was changed");
  WriteDigest(o, exchange.get(), block);
  return 0;
}

}  // namespace
}  // namespace heat

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(heat::kUsage, stdout);
    return 0;
  }
  try {
    return heat::Run(heat::Parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "heat: %s\n%s", error.what(), heat::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heat: %s\n", error.what());
    return 1;
  }
}
