//! A process that is killed at any of its effects: what the next one makes of it.

use super::flags::measured;
use super::world::World;

fn night(die_at: Option<(u64, usize)>) -> World {
    let mut world = World::new(7, &["a"], &measured());
    world.pod("a", "web-1");
    world.pod("a", "kured-x");
    world.open.insert("a".to_owned());
    world.die_at = die_at;
    world.run(900);
    world
}

#[test]
fn a_kill_at_any_effect_ends_with_one_reboot_and_a_free_lock() {
    let whole = night(None);
    let count = |life: u64| whole.effects.iter().filter(|did| did.life == life).count();
    let mut points = 0;
    for life in [1, 2] {
        // Of the endless loop after the return two ticks are enough.
        for index in 0..count(life).min(60) {
            let world = night(Some((life, index)));
            let effect = whole.effects.iter().filter(|did| did.life == life).nth(index).expect("an effect");
            let row = format!("life {life}, effect {index}: {}", effect.what);
            assert_eq!((world.rebooted().as_str(), world.lock()), ("a", None), "{row}");
            // Killed between the write of the lock and the reboot, it is the start-up that uncordons and releases.
            assert!(!world.is_cordoned("a"), "{row}");
            assert!(!world.is_in_progress("a"), "{row}");
            points += 1;
        }
    }
    assert!(points > 60, "{points}");
    println!("figure kured.deaths {points} points");
}
