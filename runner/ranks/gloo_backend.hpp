// The collectives of LibTorch that a group speaks by: where its ranks meet, and c10d's backend over Gloo.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "ranks/ranks.hpp"

namespace headroom {

// Both wait for the other ranks at most so long, and throw what c10d throws where they do not come. Gloo tries five
// times to reach a peer, each time so long.
c10::intrusive_ptr<c10d::Store> open_store(const Ranks& ranks, std::chrono::seconds time);
c10::intrusive_ptr<c10d::Backend> open_backend(const Ranks& ranks, const c10::intrusive_ptr<c10d::Store>& store,
                                               std::chrono::milliseconds time);

}  // namespace headroom
