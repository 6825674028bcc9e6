#include "architecture.hpp"

#include "headroom/sdk/shape_text.hpp"

namespace headroom {
namespace {

using namespace sdk;

Fusion fusion_of(const std::string& name) {
  if (name == "none") return Fusion::none;
  if (name == "concat") return Fusion::concat;
  return name == "adapter" ? Fusion::adapter : Fusion::cross_attention;
}

void require_lists(const VrtShape& shape) {
  const std::size_t count = shape.depths.size();
  if (count <= VrtShape::kStages || shape.embed_dims.size() != count || shape.num_heads.size() != count) {
    invalid(
        "model.options.depths, embed_dims and num_heads must have one number for each of the 7 stages and for each "
        "group behind them, 8 or more in all; they have " +
        std::to_string(count) + ", " + std::to_string(shape.embed_dims.size()) + " and " +
        std::to_string(shape.num_heads.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int64_t width = shape.embed_dims[i];
    if (width % 4 != 0 || width % shape.num_heads[i] != 0) {
      invalid("model.options.embed_dims[" + std::to_string(i) + "] is " + std::to_string(width) +
              ": it must be a multiple of 4 and of num_heads[" + std::to_string(i) +
              "] = " + std::to_string(shape.num_heads[i]));
    }
    if (i > VrtShape::kStages && width != shape.embed_dims[VrtShape::kStages]) {
      invalid("model.options.embed_dims[" + std::to_string(i) + "] is " + std::to_string(width) +
              ": all groups behind the stages have one width, here " +
              std::to_string(shape.embed_dims[VrtShape::kStages]));
    }
  }
}

void require_stages(const VrtShape& shape, Fusion fusion) {
  for (std::size_t i = 0; i < VrtShape::kStages; ++i) {
    const int64_t width = shape.embed_dims[i], seen = shape.neighbours() * width;
    if (width % shape.neighbours() != 0 || seen % shape.deformable_groups != 0) {
      invalid("model.options.embed_dims[" + std::to_string(i) + "] is " + std::to_string(width) +
              ": with pa_frames = " + std::to_string(shape.pa_frames) + " it must be a multiple of " +
              std::to_string(shape.neighbours()) + ", and " + std::to_string(seen) +
              " of deformable_groups = " + std::to_string(shape.deformable_groups));
    }
    // Skip connections add stages of one scale.
    const std::size_t partner = i < 3 ? VrtShape::kStages - 1 - i : i;
    const bool fused = fusion == Fusion::cross_attention && i < 4;
    if (shape.embed_dims[partner] != width || (fused && width != shape.embed_dims[0])) {
      invalid("model.options.embed_dims: stages of one scale (1 and 7, 2 and 6, 3 and 5) must have one width" +
              std::string(fused ? ", and with fusion = \"cross_attention\" the first four too" : ""));
    }
  }
}

const Field& clip_field(const Fields& fields, const char* name, int64_t channels) {
  const Field& field = fields.at(name);
  const bool right_type = same_type(field.dtype, f32) || (channels == 3 && same_type(field.dtype, u8));
  if (field.shape.size() != 4 || !right_type || (channels != 0 && field.shape[1] != channels)) {
    invalid("the field '" + field.name + "' must be " +
            (channels == 3 ? "float32 or uint8 [frame, 3" : "float32 [frame, bin") + ", y, x]; the data source gives " +
            shape_text(field.shape));
  }
  return field;
}

int64_t bins_of(const Fields& fields, const Field& blur, const std::string& fusion, int64_t expected) {
  if (fields.find("voxel") == nullptr) {
    invalid("model.options.fusion is \"" + fusion +
            "\", which needs the field 'voxel', and the data source gives none: "
            "set data.options.use_voxel = true, or model.options.fusion = \"none\"");
  }
  const Field& voxel = clip_field(fields, "voxel", 0);
  if (voxel.shape[0] != blur.shape[0] || voxel.shape[2] != blur.shape[2] || voxel.shape[3] != blur.shape[3]) {
    invalid("the field 'voxel' is " + shape_text(voxel.shape) +
            ": its frames, rows and columns must be those of 'blur', " + shape_text(blur.shape));
  }
  if (expected != 0 && voxel.shape[1] != expected) {
    invalid("the field 'voxel' has " + std::to_string(voxel.shape[1]) + " bins, but model.options.voxel_bins is " +
            std::to_string(expected) + ": set data.options.num_bins, or model.options.voxel_bins, to the same number");
  }
  return voxel.shape[1];
}

Tiles tiles_of(const Options& options, const VrtShape& shape) {
  const std::vector<int64_t> tile = options.list_i64("tile"), overlap = options.list_i64("tile_overlap");
  Tiles tiles;
  if (tile.empty()) return tiles;
  if (tile.size() != 2 || overlap.size() != 2) {
    invalid("model.options.tile and tile_overlap are [frames, pixels]; they have " + std::to_string(tile.size()) +
            " and " + std::to_string(overlap.size()) + " numbers");
  }
  tiles = {true, tile[0], tile[1], overlap[0], overlap[1]};
  const int64_t columns = shape.window[2], least = std::max(least_pixels(shape.window[1]), least_pixels(columns));
  if (tiles.pixels != 0 && (tiles.pixels % columns != 0 || tiles.pixels % 8 != 0 || tiles.pixels < least)) {
    invalid("model.options.tile: tiles of " + std::to_string(tiles.pixels) +
            " pixels; they must be a multiple of 8 and of " + std::to_string(columns) + ", the window, and at least " +
            std::to_string(least) + ", or 0 for the whole frame");
  }
  if (tiles.frames != 0 && tiles.frames <= shape.neighbours()) {
    invalid("model.options.tile: tiles of " + std::to_string(tiles.frames) +
            " frames; with pa_frames = " + std::to_string(shape.pa_frames) + " at least " +
            std::to_string(shape.neighbours() + 1) + " are needed, or 0 for the whole clip");
  }
  if ((tiles.frames != 0 && tiles.frame_overlap >= tiles.frames) ||
      (tiles.pixels != 0 && tiles.pixel_overlap >= tiles.pixels)) {
    invalid("model.options.tile_overlap is " + shape_text(overlap) +
            ": it must be less than tile = " + shape_text(tile));
  }
  return tiles;
}

}  // namespace

OptionList Architecture::options() {
  return {
      opt_string("fusion")
          .def("cross_attention")
          .choices({"cross_attention", "concat", "adapter", "none"})
          .help("how the field 'voxel' is used: a branch the first stages attend to; further channels of the input; a "
                "convolution, zero at first, added to the first features; not at all"),
      opt_i64("voxel_bins").def(0).min(0).max(4096).help("bins the field 'voxel' must have; 0: as many as it has"),
      opt_i64s("depths")
          .def("[8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4]")
          .min(1)
          .max(64)
          .help("attention blocks of the 7 stages, then of the groups behind"),
      opt_i64s("embed_dims")
          .def("[96, 96, 96, 96, 96, 96, 96, 120, 120, 120, 120]")
          .min(4)
          .max(4096)
          .help("channels of each"),
      opt_i64s("num_heads").def("[6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6]").min(1).max(256).help("attention heads of each"),
      opt_i64s("window_size")
          .def("[6, 8, 8]")
          .min(1)
          .max(64)
          .help("frames, rows and columns that attend to each other"),
      opt_f64("mul_attn_ratio").def(0.75).min(0.0).max(1.0).help("share of a stage's blocks with mutual attention"),
      opt_f64("mlp_ratio").def(2.0).min(0.25).max(16.0).help("width inside the MLPs, in channels"),
      opt_i64("pa_frames").def(2).min(2).max(6).help("neighbours warped to each frame: 2, 4 or 6"),
      opt_i64("deformable_groups").def(16).min(1).max(256).help("of the deformable convolution"),
      opt_i64s("indep_reconsts")
          .def("[9, 10]")
          .min(7)
          .max(256)
          .help("places in depths of groups whose windows have one frame"),
      opt_f64("drop_path_rate").def(0.2).min(0.0).max(0.999).help("stochastic depth of the last block, in training"),
      opt_f64("charbonnier_eps")
          .def(1e-9)
          .min(1e-18)
          .max(1.0)
          .help("the loss is the mean of sqrt(difference^2 + this)"),
      opt_f64("flow_lr_scale")
          .def(0.125)
          .min(0.0)
          .help("learning rate of SpyNet and the alignment, in the rest's; 0: they never train"),
      opt_i64("fix_iters").def(20000).min(0).help("steps before SpyNet and the alignment begin to train"),
      opt_i64s("tile").def("[]").min(0).help(
          "in evaluation: [frames, pixels] of a tile, 0: all of them; []: one run, no tiles"),
      opt_i64s("tile_overlap").def("[2, 20]").min(0).help("frames and pixels that neighbouring tiles share")};
}

Architecture Architecture::read(const Options& options, const Fields& fields) {
  Architecture to;
  VrtShape& shape = to.network;
  shape.depths = options.list_i64("depths");
  shape.embed_dims = options.list_i64("embed_dims");
  shape.num_heads = options.list_i64("num_heads");
  shape.indep_reconsts = options.list_i64("indep_reconsts");
  shape.mul_attn_ratio = options.f64("mul_attn_ratio");
  shape.mlp_ratio = options.f64("mlp_ratio");
  shape.pa_frames = options.i64("pa_frames");
  shape.deformable_groups = options.i64("deformable_groups");
  shape.drop_path_rate = options.f64("drop_path_rate");
  const std::vector<int64_t> window = options.list_i64("window_size");
  if (window.size() != 3) invalid("model.options.window_size is [frames, rows, columns], not " + shape_text(window));
  shape.window = {window[0], window[1], window[2]};
  if (shape.pa_frames % 2 != 0)
    invalid("model.options.pa_frames is " + std::to_string(shape.pa_frames) + ": 2, 4 or 6");
  const std::string fusion = options.string("fusion");
  to.fusion = fusion_of(fusion);
  require_lists(shape);
  require_stages(shape, to.fusion);
  to.charbonnier_eps = options.f64("charbonnier_eps");
  to.flow_lr_scale = options.f64("flow_lr_scale");
  to.fix_iters = options.i64("fix_iters");
  to.tiles = tiles_of(options, shape);

  const Field& blur = clip_field(fields, "blur", 3);
  if (const Field& sharp = clip_field(fields, "sharp", 3); sharp.shape != blur.shape) {
    invalid("the field 'sharp' is " + shape_text(sharp.shape) + " and 'blur' " + shape_text(blur.shape) +
            ": they must be alike");
  }
  if (to.fusion != Fusion::none) to.bins = bins_of(fields, blur, fusion, options.i64("voxel_bins"));
  if (to.fusion == Fusion::concat) shape.in_channels += to.bins;
  to.require_size(blur.shape[0], blur.shape[2], blur.shape[3]);
  return to;
}

void Architecture::require_size(int64_t frames, int64_t rows, int64_t columns) const {
  const std::string size = std::to_string(rows) + " x " + std::to_string(columns);
  if (rows % 8 != 0 || columns % 8 != 0)
    invalid("frames of " + size + " pixels: both must be multiples of 8; set data.options.crop_size to one");
  const int64_t high = least_pixels(network.window[1]), wide = least_pixels(network.window[2]);
  if (rows < high || columns < wide) {
    invalid("frames of " + size + " pixels are too small: an eighth of them must hold a window of " +
            std::to_string(network.window[1]) + " x " + std::to_string(network.window[2]) +
            ", and the optical flow needs more than 32, so at least " + std::to_string(high) + " x " +
            std::to_string(wide));
  }
  if (frames <= network.neighbours()) {
    invalid("clips of " + std::to_string(frames) + " frames: with pa_frames = " + std::to_string(network.pa_frames) +
            " at least " + std::to_string(network.neighbours() + 1) + " are needed; set data.options.clip_length");
  }
}

}  // namespace headroom
