#include "network.hpp"

namespace headroom {

Network::Network(const Architecture& architecture) : fusion_(architecture.fusion), bins_(architecture.bins) {
  const int64_t width = architecture.network.embed_dims.front();
  if (fusion_ == Fusion::cross_attention) {
    root_ = std::make_shared<Names>();
    vrt_ = add_layer<Vrt>(*root_, "vrt", architecture.network);
    branch_ = std::make_unique<SpikeBranch>(*root_, bins_, width);
    return;
  }
  root_ = vrt_ = std::make_shared<Vrt>(architecture.network);
  if (fusion_ == Fusion::adapter) {
    adapter_ = add_layer<FrameConv>(*root_, "voxel_adapter", bins_, width);
    torch::nn::init::zeros_(adapter_->weight);
    torch::nn::init::zeros_(adapter_->bias);
  }
}

at::Tensor Network::forward(const sdk::Call& call, const at::Tensor& clip) {
  const Pass pass{call, tables_};
  const at::Tensor colours = clip.narrow(2, 0, 3);
  const Flows flows = vrt_->flows(colours);
  if (fusion_ == Fusion::none || fusion_ == Fusion::concat) return vrt_->forward(pass, clip, flows, {});
  const at::Tensor voxel = clip.narrow(2, 3, bins_);
  if (fusion_ == Fusion::adapter) {
    return vrt_->forward(pass, colours, flows, {adapter_->forward(voxel.permute({0, 1, 3, 4, 2})), {}});
  }
  const std::array<at::Tensor, kScales> spikes = branch_->features(voxel);
  const auto fuse = [&](std::size_t stage, const at::Tensor& features) {
    return branch_->fuse(stage, features, spikes[stage]);
  };
  return vrt_->forward(pass, colours, flows, {{}, fuse});
}

}  // namespace headroom
