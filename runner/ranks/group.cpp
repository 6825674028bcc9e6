#include "ranks/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "error.hpp"

namespace headroom {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds time_to_meet(300), time_to_answer(1800), time_to_say(2);

c10::intrusive_ptr<c10d::Store> open_store(const Ranks& ranks) {
  c10::intrusive_ptr<c10d::Store> store;
  if (!ranks.store_file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(ranks.store_file, ranks.count);
  } else {
    c10d::TCPStoreOptions options;
    options.port = ranks.port;
    options.isServer = ranks.is_first() && !ranks.hosted_by_launcher;
    options.waitWorkers = false;
    options.timeout = time_to_meet;
    store = c10::make_intrusive<c10d::TCPStore>(ranks.host, options);
  }
  store->setTimeout(time_to_meet);
  return c10::make_intrusive<c10d::PrefixStore>("headroom/" + ranks.attempt, store);
}

// By the interface that leads to rank 0: a machine's name may resolve to a loopback address that others cannot reach.
c10::intrusive_ptr<c10d::Backend> open_backend(const Ranks& ranks, const c10::intrusive_ptr<c10d::Store>& store) {
  auto options = c10d::ProcessGroupGloo::Options::create(time_to_answer);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  const bool one_machine = ranks.local_count == ranks.count;
  options->devices.push_back(interface != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                             : one_machine        ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                                  : c10d::ProcessGroupGloo::createDefaultDevice());
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, ranks.rank, ranks.count, options);
}

std::string alive_key(int rank) { return "alive/" + std::to_string(rank); }

}  // namespace

struct RankGroup::Backend {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> gloo;
};

RankGroup::RankGroup(const Ranks& ranks) : ranks_(ranks) {
  try {
    auto store = open_store(ranks);
    auto gloo = open_backend(ranks, store);
    backend_ = std::make_unique<Backend>(std::move(store), std::move(gloo));
  } catch (const std::exception& problem) {
    const std::string what = problem.what();
    throw Error(Exit::bad_input, "ranks",
                ranks.name() + " (" + ranks.launcher + ", host " + host_name() + ") has not met the others" +
                    (ranks.store_file.empty() ? " at " + ranks.host + ":" + std::to_string(ranks.port) : "") +
                    ": see that all were started, and that this address can be reached (" +
                    what.substr(0, what.find('\n')) + ")");
  }
  hosts_ = gather(host_name());
}

RankGroup::~RankGroup() = default;

// Whoever misses one says so in the store and looks who else is there to say so. Rank 0 may have taken the store along.
std::string RankGroup::lost() const {
  std::vector<int> silent;
  try {
    backend_->store->set(alive_key(ranks_.rank), std::vector<uint8_t>{1});
    const auto until = std::chrono::steady_clock::now() + time_to_say;
    do {
      silent.clear();
      for (int rank = 0; rank < ranks_.count; ++rank) {
        if (!backend_->store->check({alive_key(rank)})) silent.push_back(rank);
      }
      if (silent.empty()) break;
      std::this_thread::sleep_for(milliseconds(50));
    } while (std::chrono::steady_clock::now() < until);
  } catch (const std::exception&) {
    silent = {0};
  }
  std::string text;
  for (const int rank : silent) {
    Ranks other = ranks_;
    other.rank = rank;
    text += (text.empty() ? "" : ", ") + other.name();
    if (static_cast<size_t>(rank) < hosts_.size()) text += " on host " + hosts_[static_cast<size_t>(rank)];
  }
  return text;
}

template <class Call>
void RankGroup::run(Call&& call) {
  std::string problem;
  try {
    call(*backend_->gloo);
    return;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& caught) {
    problem = caught.what();
  }
  const std::string gone = lost();
  throw Error(Exit::resumable, "ranks",
              (gone.empty() ? "the connection between the ranks broke (" + problem.substr(0, problem.find('\n')) + ")"
                            : gone + " has ended, or cannot be reached") +
                  ": resume the run from its last checkpoint, on as many processes as you like");
}

void RankGroup::add_up(at::Tensor tensor) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  run([&](c10d::Backend& gloo) { gloo.allreduce(tensors)->wait(); });
}

void RankGroup::add_up(std::span<double> numbers) {
  add_up(torch::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, at::kDouble));
}

std::vector<std::string> RankGroup::gather(std::string_view bytes) {
  const auto count = static_cast<size_t>(ranks_.count), rank = static_cast<size_t>(ranks_.rank);
  std::vector<int64_t> sizes(count, 0);
  sizes[rank] = static_cast<int64_t>(bytes.size());
  add_up(torch::from_blob(sizes.data(), {ranks_.count}, at::kLong));
  const auto longest = static_cast<size_t>(*std::ranges::max_element(sizes));
  std::vector<std::string> all(count);
  if (longest == 0) return all;
  // Of one length for all, as the collective wants it.
  std::string own(bytes), others(longest * count, '\0');
  own.resize(longest);
  const auto view = [](char* data, size_t size) {
    return torch::from_blob(data, {static_cast<int64_t>(size)}, at::kByte);
  };
  std::vector<at::Tensor> inputs = {view(own.data(), longest)};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (size_t i = 0; i < count; ++i) outputs[0].push_back(view(others.data() + i * longest, longest));
  run([&](c10d::Backend& gloo) { gloo.allgather(outputs, inputs)->wait(); });
  for (size_t i = 0; i < count; ++i) all[i] = others.substr(i * longest, static_cast<size_t>(sizes[i]));
  return all;
}

std::string RankGroup::from_first(std::string_view bytes) { return gather(is_first() ? bytes : "").front(); }

bool RankGroup::on_all(bool holds) {
  double not_held = holds ? 0 : 1;
  add_up({&not_held, 1});
  return not_held == 0;
}

void RankGroup::wait_for_all() { (void)on_all(true); }

std::shared_ptr<RankGroup> join_group(const Ranks& ranks) {
  return ranks.alone() ? nullptr : std::make_shared<RankGroup>(ranks);
}

}  // namespace headroom
