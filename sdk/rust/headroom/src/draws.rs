//! Keyed random numbers: pure functions of (key, site, i), the same as of the C++ SDK. A site is one place in the code that
//! draws; give each its own name: `uniform(sample.key(), site("jitter"), 0)`.

/// FNV-1a of the name.
pub const fn site(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01B3);
        i += 1;
    }
    hash
}

/// The key of one sample of data that is computed. What is read for the host has a key already: `Sample::key`.
pub fn sample_key(seed: u64, split: u32, epoch: u64, index: u64) -> u64 {
    let stream = philox64(seed, 0x6865_6164_7200_6B65u64.wrapping_add(u64::from(split)), epoch);
    philox64(stream, 0x7361_6D70_6C65, index)
}

/// In [0, 1).
pub fn uniform(key: u64, site: u64, i: u64) -> f64 {
    (philox64(key, site, i) >> 11) as f64 / (1u64 << 53) as f64
}

/// An integer in [0, bound), bound > 0.
pub fn below(key: u64, site: u64, bound: u64, i: u64) -> u64 {
    (uniform(key, site, i) * bound as f64) as u64
}

/// Standard normal.
pub fn normal(key: u64, site: u64, i: u64) -> f64 {
    let words = philox(key, site, i);
    let whole = (1u64 << 32) as f64;
    let radius = (-2.0 * ((f64::from(words[0]) + 0.5) / whole).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * (f64::from(words[1]) / whole)).cos()
}

fn philox64(key: u64, site: u64, block: u64) -> u64 {
    let words = philox(key, site, block);
    u64::from(words[1]) << 32 | u64::from(words[0])
}

/// Philox4x32-10, as headroom/random.h has it.
fn philox(key: u64, site: u64, block: u64) -> [u32; 4] {
    let mut c = [block as u32, (block >> 32) as u32, site as u32, (site >> 32) as u32];
    let (mut k0, mut k1) = (key as u32, (key >> 32) as u32);
    for _ in 0..10 {
        let p0 = 0xD251_1F53u64 * u64::from(c[0]);
        let p1 = 0xCD9E_8D57u64 * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k1, p0 as u32];
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    // What headroom/random.h gives.
    #[test]
    fn draws_equal_those_of_the_c_header() {
        let words = philox(0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210, 0x1122_3344_5566_7788);
        assert_eq!(words, [0x7FA7_7140, 0xB961_1EC1, 0xD90C_D420, 0x1195_70EC]);
        assert_eq!(sample_key(7, 2, 3, 12345), 0x137D_19C3_8246_AE7F);
        assert_eq!(uniform(5, 6, 7), 0.36491112730811803);
    }

    #[test]
    fn a_site_is_fnv_1a_of_its_name() {
        assert_eq!(site(""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(site("a"), 0xAF63_DC4C_8601_EC8C);
    }
}
